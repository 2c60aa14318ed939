"""What errors are called in other languages."""

# strerror() of other languages, lower case. Only what these errors are called there; a text that is
# not in the list stays as it is, and its errno number, where one is printed, still counts.
LOCALIZED = {
    "permission denied": (
        "keine berechtigung", "permission non accordée", "permiso denegado", "permissão negada",
        "permesso negato", "отказано в доступе", "许可がありません", "許可がありません", "权限不够",
        "brak dostępu", "toegang geweigerd", "åtkomst nekas", "ei oikeutta", "허가 거부", "přístup odmítnut",
    ),
    "operation not permitted": (
        "die operation ist nicht erlaubt", "vorgang nicht zulässig", "opération non permise", "operación no permitida",
        "operação não permitida", "operazione non permessa", "операция не позволена", "許可されていない操作です",
        "不允许的操作", "operacja niedozwolona", "bewerking niet toegestaan", "명령을 허용하지 않음",
    ),
    "no such file or directory": (
        "datei oder verzeichnis nicht gefunden", "aucun fichier ou dossier de ce nom", "aucun fichier ou dossier de ce type",
        "no existe el fichero o el directorio", "no existe el archivo o el directorio", "arquivo ou diretório inexistente",
        "ficheiro ou pasta inexistente", "file o directory non esistente", "нет такого файла или каталога",
        "そのようなファイルやディレクトリはありません", "没有那个文件或目录", "nie ma takiego pliku ani katalogu",
        "bestand of map bestaat niet", "그런 파일이나 디렉터리가 없습니다",
    ),
    "invalid argument": (
        "das argument ist ungültig", "argument invalide", "argument non valable", "argumento inválido", "argumento no válido",
        "argomento non valido", "недопустимый аргумент", "無効な引数です", "无效的参数", "zły argument", "ongeldig argument",
    ),
    "cannot allocate memory": (
        "nicht genügend hauptspeicher verfügbar", "ne peut allouer de la mémoire", "no se pudo asignar memoria",
        "não foi possível alocar memória", "impossibile allocare memoria", "не удалось выделить память",
        "メモリを確保できません", "无法分配内存", "nie można przydzielić pamięci",
    ),
    "no space left on device": (
        "auf dem gerät ist kein speicherplatz mehr verfügbar", "kein speicherplatz mehr auf dem gerät verfügbar",
        "aucun espace disponible sur le périphérique", "no queda espacio en el dispositivo", "não há espaço disponível no dispositivo",
        "spazio esaurito sul dispositivo", "на устройстве не осталось свободного места", "デバイスに空き領域がありません",
        "设备上没有空间", "brak miejsca na urządzeniu",
    ),
    "read-only file system": (
        "das dateisystem ist nur lesbar", "system de fichiers en lecture seule", "système de fichiers accessible en lecture seulement",
        "sistema de ficheros de sólo lectura", "sistema de archivos de solo lectura", "sistema de arquivos somente para leitura",
        "file system in sola lettura", "файловая система доступна только для чтения", "読み込み専用ファイルシステムです", "只读文件系统",
    ),
    "resource temporarily unavailable": (
        "die ressource ist zur zeit nicht verfügbar", "ressource temporairement non disponible", "recurso no disponible temporalmente",
        "recurso temporariamente indisponível", "risorsa temporaneamente non disponibile", "ресурс временно недоступен",
        "リソースが一時的に利用できません", "资源暂时不可用", "zasoby chwilowo niedostępne",
    ),
    "bus error": ("bus-zugriffsfehler", "总线错误"),
    "killed": ("terminado (killed)", "getötet", "已杀死"),
    "address already in use": (
        "die adresse wird bereits verwendet", "adresse déjà utilisée", "la dirección ya se está usando", "адрес уже используется",
        "アドレスは既に使用中です", "地址已在使用",
    ),
}  # fmt: skip
